<?php

// Kinds of calls. Each one ends in hold(), which writes the stack that PHP itself reports, and
// waits.
function hold()
{
    $trace = [];
    foreach (debug_backtrace(DEBUG_BACKTRACE_IGNORE_ARGS) as $call) {
        $name = match ($call['function']) {
            'include', 'include_once', 'require', 'require_once' => '{include}',
            'eval' => '{eval}',
            default => (isset($call['class']) ? $call['class'] . '::' : '') . $call['function'],
        };
        $name = explode("\0", $name)[0];
        // An anonymous class's name continues with a file after a zero byte.
        $name = isset($call['class']) && str_contains($call['class'], "\0")
            ? explode("\0", $call['class'])[0] . '::' . $call['function'] : $name;
        $trace[] = [$name, $call['line'] ?? 0];
    }
    echo json_encode($trace), "\n";
    fgets(STDIN);
}

interface Doing
{
    public function does();
}

trait Holding
{
    public static function still($then)
    {
        $then();
    }

    public function fromTrait()
    {
        hold();
    }
}

abstract class Above implements Doing, IteratorAggregate, ArrayAccess, Countable, JsonSerializable
{
    use Holding;

    public function below()
    {
        return $this->does();
    }
}

class Other extends Above
{
    use Holding {
        fromTrait as renamed;
        still as private stillOther;
    }

    public function does()
    {
        hold();
    }
    public function getIterator(): Iterator
    {
        return new ArrayIterator([]);
    }
    public function offsetExists($at): bool
    {
        return true;
    }
    public function offsetGet($at): mixed
    {
        return 1;
    }
    public function offsetSet($at, $value): void
    {
    }
    public function offsetUnset($at): void
    {
    }
    public function count(): int
    {
        return 0;
    }
    public function jsonSerialize(): mixed
    {
        return 1;
    }
    public function below()
    {
        return static::others(parent::below(...));
    }
    public static function others($then)
    {
        return self::stillOther($then);
    }
}

class_alias(Other::class, 'Named\\Otherwise');

class Thing extends Above
{
    public function __construct(private ?Closure $then = null)
    {
    }
    public function does()
    {
        hold();
    }
    public function __call($name, $arguments)
    {
        hold();
    }
    public static function __callStatic($name, $arguments)
    {
        hold();
    }
    public function __get($name)
    {
        hold();
        return 1;
    }
    public function __toString(): string
    {
        hold();
        return '';
    }
    public function __invoke($x = 0)
    {
        hold();
    }
    public function __destruct()
    {
        if ($this->then) {
            ($this->then)();
        }
    }
    public function getIterator(): Iterator
    {
        hold();
        return new ArrayIterator([]);
    }
    public function offsetExists($at): bool
    {
        return true;
    }
    public function offsetGet($at): mixed
    {
        hold();
        return 1;
    }
    public function offsetSet($at, $value): void
    {
    }
    public function offsetUnset($at): void
    {
    }
    public function count(): int
    {
        hold();
        return 0;
    }
    public function jsonSerialize(): mixed
    {
        hold();
        return 1;
    }
}

enum Suit: string
{
    case Hearts = 'h';

    public function play()
    {
        hold();
    }
}

function numbers()
{
    yield 1;
    hold();
    yield 2;
}

function more()
{
    yield 0;
    $got = yield from numbers();
    yield 3;
}

function most()
{
    yield from [7, 8];
    yield from more();
}

function within($n)
{
    if ($n > 0) {
        within($n - 1);
    } else {
        hold();
    }
}

function throws()
{
    throw new RuntimeException('thrown');
}

$own = __DIR__ . '/included.php';

switch ($argv[1]) {
    case 'plain':
        hold();
        break;
    case 'recursion':
        within(40);
        break;
    case 'method':
        (new Thing())->below();
        break;
    case 'trait':
        (new Thing())->fromTrait();
        break;
    case 'renamed method':
        (new Other())->renamed();
        break;
    case 'another name of a class':
        (new Named\Otherwise())->below();
        break;
    case 'called in an argument':
        $n = [max(1, max(2, within(max(1, 2)), 3)), max(4, 5)];
        break;
    case 'called behind many arguments':
        $f = 'max';
        $n = max(
            'a', 'b', 'c', 'd', 'e', 'f', 'g', 'h', 'i', 'j', 'k', 'l', 'm', 'n', 'o', 'p', 'q', 'r', 's', 't', 'u', 'v',
            'a', 'b', 'c', 'd', 'e', 'f', 'g', 'h', 'i', 'j', 'k', 'l', 'm', 'n', 'o', 'p', 'q', 'r', 's', 't', 'u', 'v',
            'a', 'b', 'c', 'd', 'e', 'f', 'g', 'h', 'i', 'j', 'k', 'l', 'm', 'n', 'o', 'p', 'q', 'r', 's', 't', 'u', 'v',
            $f(1, 2),
            WITHIN(1)
        );
        break;
    case 'static closure':
        Thing::still(static function () {
            hold();
        });
        break;
    case 'arrow function':
        Thing::still(fn() => fn() => hold());
        (fn() => hold())();
        break;
    case 'first class callable':
        $f = hold(...);
        (static fn($g) => $g())($f);
        break;
    case 'array_map':
        array_map(function ($x) {
            within($x);
        }, [3]);
        break;
    case 'usort':
        $a = [2, 1];
        usort($a, function ($x, $y) {
            hold();
            return 0;
        });
        break;
    case 'call_user_func':
        call_user_func_array([new Thing(), 'does'], []);
        break;
    case 'magic call':
        (new Thing())->nothing(1, 2);
        break;
    case 'magic static call':
        Thing::nothing(1, 2);
        break;
    case 'magic get':
        $x = (new Thing())->nothing;
        break;
    case 'to string':
        $x = 'a' . new Thing();
        break;
    case 'internal to string':
        $x = strlen(new Thing());
        break;
    case 'invoke':
        array_filter([1], new Thing());
        break;
    case 'destructor':
        $thing = new Thing(function () {
            hold();
        });
        $thing = null;
        break;
    case 'iterator':
        foreach (new Thing() as $x) {
        }
        break;
    case 'offset':
        $x = (new Thing())['a'];
        break;
    case 'count':
        count(new Thing());
        break;
    case 'json':
        json_encode([new Thing()]);
        break;
    case 'enum':
        Suit::from('h')->play();
        break;
    case 'anonymous class':
        (new class {
            public function does()
            {
                hold();
            }
        })->does();
        break;
    case 'generator':
        foreach (numbers() as $x) {
        }
        break;
    case 'delegating generators':
        foreach (most() as $x) {
        }
        break;
    case 'generator of a function':
        iterator_to_array(most(), false);
        break;
    case 'fiber':
        (new Fiber(function () {
            within(3);
        }))->start();
        break;
    case 'fiber that was resumed':
        $fiber = new Fiber(function ($x) {
            $y = Fiber::suspend($x);
            within($y);
        });
        $fiber->start(1);
        (function () use ($fiber) {
            $fiber->resume(2);
        })();
        break;
    case 'fibers with generators':
        (new Fiber(function () {
            foreach (most() as $x) {
                (new Fiber(function () use ($x) {
                    Fiber::suspend($x);
                }))->start();
            }
        }))->start();
        break;
    case 'eval':
        eval("\n\nwithin(2);");
        break;
    case 'include':
        file_put_contents($own, "<?php\n\nfunction included() {\n    hold();\n}\n\nincluded();\n");
        (function () use ($own) {
            require $own;
        })();
        break;
    case 'autoload':
        spl_autoload_register(function ($class) {
            hold();
        });
        class_exists('Nowhere');
        break;
    case 'catch':
        try {
            throws();
        } catch (RuntimeException $e) {
            hold();
        }
        break;
    case 'finally':
        try {
            try {
                throws();
            } finally {
                hold();
            }
        } catch (RuntimeException $e) {
        }
        break;
    case 'error handler':
        set_error_handler(function () {
            hold();
            return true;
        });
        echo '', $undefined;
        break;
    case 'output callback':
        ob_start(function ($text) {
            return $text;
        });
        ob_end_clean();
        hold();
        break;
    case 'preg callback':
        preg_replace_callback('/a/', function ($m) {
            hold();
            return '';
        }, 'xax');
        break;
    case 'named arguments':
        (function (int $a, int ...$rest) {
            hold();
        })(...['a' => 1, 'c' => 2]);
        break;
}
