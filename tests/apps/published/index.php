<?php

/*
 * Published values, which all workers read without a copy. Each path does one operation and
 * responds with the result. MODEL sets the execution model. The code before its call runs once.
 */

declare(strict_types=1);

use function Samovar\publish;
use function Samovar\published;

/** Returns the exception of an operation as text. */
function thrown(callable $operation): string
{
    try {
        return 'nothing: ' . json_encode($operation());
    } catch (\Throwable $thrown) {
        return $thrown::class . ': ' . $thrown->getMessage();
    }
}

/** Values of all types that can be published, in many sizes. */
function everything(): array
{
    $holes = [1, 2, 3];
    unset($holes[1]);
    $numbers = range(0, 1000);
    $names = array_map(fn (int $i): string => "name $i", $numbers);
    $left = [1, 2, 3];
    foreach ($left as &$value) {
        $value *= 2;
    }
    unset($value);

    return [
        'null' => null, 'bools' => [true, false], 'ints' => [0, -1, PHP_INT_MAX, PHP_INT_MIN],
        'floats' => [0.5, -0.0, INF, 1e300], 'strings' => ['', 'a', "\0\xff", str_repeat('long ', 1000), 'a', 'é'],
        'empty' => [], 'holes' => $holes, 'keys' => [-5 => 'a', 7 => 'b', '' => 'c', '07' => 'd', "\0" => 'e'],
        'deep' => [[[[[['x' => [1]]]]]]], 'numbers' => $numbers, 'map' => array_combine($names, $numbers),
        'references of one' => $left,
    ];
}

/** Applies all kinds of array operations to an array in read-only memory. */
function used(array $found): array
{
    $changed = $found;
    $changed['strings'][] = 'more';
    $changed['deep'][0][0][0][0][0]['x'][] = 2;
    $changed['map']['name 7'] = 'other';
    unset($changed['map']['name 8'], $changed['numbers'][5], $changed['keys']['']);
    $changed['empty']['first'] = 1;
    $changed['holes'][] = 4;
    foreach ($changed['numbers'] as &$number) {
        $number++;
    }
    unset($number);
    sort($changed['ints']);
    array_walk_recursive($changed, function (&$value): void {
        $value = is_string($value) ? "$value!" : $value;
    });
    $object = new ArrayObject($found['map']);
    $object['name 9'] = 'own';
    $iterated = 0;
    foreach (new ArrayIterator($found['map']) as $value) {
        $iterated += $value === null ? 0 : 1;
    }
    $by_reference = &$found['numbers'];
    $by_reference[0] = 'zero';
    $static = (object) $found['map'];
    $static->{'name 1'} = 'property';
    ['bools' => [$yes]] = $found;
    extract(['extracted' => $found['map']]);
    $generator = (function () use ($found) {
        yield from $found['map'];
    })();
    $pattern = '/^' . preg_quote($found['strings'][1]) . '$/u';
    gc_collect_cycles();

    return [
        'holes' => $changed['holes'], 'iterated' => $iterated, 'count' => count($changed['map']), 'yes' => $yes,
        'match' => preg_match($pattern, 'a'), 'keys' => array_keys($changed['keys']),
        'slice' => array_slice($found['map'], 2, 2), 'flip' => array_flip($found['map'])[3], 'search' => array_search(4, $found['map'], true),
        'exists' => [isset($found['map']['name 1000']), array_key_exists('name 1001', $found['map'])],
        'merge' => count(array_merge($found['map'], $found['numbers'])), 'generated' => array_sum(iterator_to_array($generator)),
        'same' => $extracted === $found['map'],
    ];
}

/** Returns a list that repeats one number. The number determines the length. */
function uniform(int $n): array
{
    return array_fill(0, 100 + $n % 900, $n);
}

function is_uniform(?array $list): bool
{
    return $list === null || count($list) === 100 + $list[0] % 900 && count(array_unique($list)) === 1;
}

$model = getenv('MODEL');
$booted = null;
if ($model !== 'script' && getenv('BOOT') !== 'no') {
    if (published('boot') === null) {
        publish('boot', ['of' => 'the boot']);
    }
    $booted = published('boot');
}

$handle = function () use (&$booted): void {
    static $kept = [];
    $path = strtok($_SERVER['REQUEST_URI'], '?');
    $n = (int) ($_GET['n'] ?? 0);
    echo json_encode(match ($path) {
        '/everything' => (function (): array {
            $value = everything();
            publish('everything', $value);
            $found = published('everything');
            $used = used($found);

            return [
                $found === $value, serialize($found) === serialize($value), published('everything') === $value, $used === used($value),
                $used['generated'],
            ];
        })(),
        '/again' => published('everything') === everything(),
        '/set' => [publish('n', ['n' => $n]), published('n')['n']],
        '/get' => [published('n')['n'] ?? null, getmypid()],
        '/json' => json_encode(published('n')),
        '/withdraw' => [publish('n', null), published('n')],
        '/scalars' => array_map(fn ($value) => [publish('s', $value), published('s') === $value][1], [1, 1.5, 'text', '', true, false, []]),
        '/within' => (function () use ($n): array {
            // Another request publishes meanwhile. This request keeps the old value.
            $before = published('n');
            $context = stream_context_create(['http' => ['timeout' => 20]]);
            $answer = file_get_contents("http://{$_GET['at']}/set?n=$n", false, $context);

            return [$before['n'], published('n')['n'], json_decode($answer, true)[1]];
        })(),
        '/hammer' => (function (): array {
            $seen = [];
            for ($i = 0; $i < 40; $i++) {
                $name = 'hammer ' . random_int(0, 2);
                $list = published($name);
                $seen[] = is_uniform($list);
                if (random_int(0, 4) === 0) {
                    try {
                        publish($name, uniform(random_int(0, 1 << 30)));
                    } catch (\RuntimeException) {
                        // No room: requests that have not continued for a while still read the old
                        // values.
                    }
                }
                $seen[] = is_uniform($list) && is_uniform(published($name));
            }

            return array_values(array_unique($seen));
        })(),
        '/keep' => [count($kept[] = published('n'))],
        '/kept' => array_column($kept, 'n'),
        '/boot' => [$booted, published('boot')],
        '/replace' => [publish('boot', ['of' => "request $n"]), published('boot')['of']],
        '/churn' => (function () use ($n): array {
            $wrong = 0;
            for ($i = 0; $i < 20; $i++) {
                publish('boot', ['of' => uniform($n + $i)]);
                publish('n', uniform($i));
                $wrong += (int) !is_uniform(published('boot')['of']);
            }

            return [$wrong, published('boot')['of'][0]];
        })(),
        '/fork' => (function (): array {
            $list = published('n');
            $child = pcntl_fork();
            if ($child === 0) {
                posix_kill(getmypid(), published('n') === $list ? SIGKILL : SIGTERM);
            }
            pcntl_waitpid($child, $status);

            return [pcntl_wtermsig($status) === SIGKILL];
        })(),
        '/large' => [publish("large $n", array_fill(0, 20_000, $n)), count(published("large $n"))],
        '/refusals' => [
            'object' => thrown(fn () => publish('no', ['a' => ['b' => [1, new DateTime()]]])),
            'closure' => thrown(fn () => publish('no', fn () => 1)),
            'resource' => thrown(fn () => publish('no', [3 => fopen('php://memory', 'r')])),
            'reference' => thrown(function (): void {
                $one = 1;
                publish('no', ['x' => [&$one]]);
            }),
            'recursion' => thrown(function (): void {
                $array = ['here' => 1];
                $array['here'] = &$array;
                publish('no', $array);
            }),
            'deep' => thrown(fn () => publish('no', array_reduce(range(1, 200), fn ($inner) => [$inner]))),
            'no name' => thrown(fn () => publish('', 1)),
            'long name' => thrown(fn () => publish(str_repeat('n', 257), 1)),
            'large' => thrown(fn () => publish('no', array_fill(0, 1 << 17, 1))),
            'long' => thrown(fn () => publish('no', str_repeat('x', 5 << 20))),
            'nothing of it' => published('no'),
        ],
        '/names' => [thrown(fn () => array_map(fn (int $i) => publish("name $i", $i), range(1, 40)))],
        default => 'what?',
    }, JSON_PRESERVE_ZERO_FRACTION | JSON_THROW_ON_ERROR);
};

switch ($model) {
    case 'resident':
        Samovar\serve($handle);
        break;
    case 'checkpoint':
        Samovar\checkpoint();
        $handle();
        break;
    default:
        $handle();
}
