<?php

declare(strict_types=1);

namespace Samovar\Testing;

use SebastianBergmann\CodeCoverage\Report;

/**
 * The driver of `samovar test`: boots the autoloader, the test framework and the application once,
 * then runs the framework's own command in one fork for each unit of tests.
 *
 * Its orders are files of JSON, which process.rs and unit.rs write.
 */
final class Driver
{
    /** Namespaces of PHPUnit and its libraries, which may be part of the system's packages. */
    private const FRAMEWORK =
        '{^(PHPUnit|SebastianBergmann|PharIo|DeepCopy|TheSeer|Pest|Doctrine\\\\Instantiator)\\\\}';
    /** Namespace of the classes that Pest generates for files. */
    private const PEST = 'P\\';
    /** Bytes that are not UTF-8, and the two characters of it that XML does not have. */
    private const NO_UTF8 = '/\xEF\xBF[\xBE\xBF]'
        . '|(?:[\xC2-\xDF]|\xE0(?=[\xA0-\xBF])[\x80-\xBF]|\xED(?=[\x80-\x9F])[\x80-\xBF]'
        . '|[\xE1-\xEC\xEE\xEF][\x80-\xBF]|\xF0(?=[\x90-\xBF])[\x80-\xBF]{2}'
        . '|[\xF1-\xF3][\x80-\xBF]{2}|\xF4(?=[\x80-\x8F])[\x80-\xBF]{2})[\x80-\xBF](*SKIP)(*F)'
        . '|[\x80-\xFF]/';
    /** Limit of the list of classes that later forks find loaded. */
    private const CLASSES_MAX = 20000;

    /** @var array<string, mixed> */
    private static array $plan = [];

    /** Boots everything that the forks share. */
    public static function boot(): void
    {
        self::$plan = self::read(__DIR__ . '/plan.json');
        if (!ini_get('date.timezone')) {
            ini_set('date.timezone', 'UTC'); // PHPUnit's command does the same.
        }
        foreach (self::$plan['autoload'] as $file) {
            require_once $file;
        }
        if (self::$plan['configuration'] !== null) {
            self::applyPhpSection(self::$plan['configuration']);
        }
        foreach (['bootstrap', 'boot'] as $part) {
            if (self::$plan[$part] !== null) {
                self::load(self::$plan[$part]);
            }
        }
    }

    /** Waits for orders. Returns the script to run, in a fork. Ends in the process itself. */
    public static function take(): string
    {
        while (($file = \samovar_test_order()) !== null) {
            $order = self::read($file);
            if (!isset($order['arguments'])) {
                self::preload($order['classes']);
                continue;
            }
            if (isset($order['merge'])) {
                self::merge($order['merge']);
                exit(0);
            }
            self::enter($order);
            return self::$plan['script'];
        }
        exit(0);
    }

    /**
     * Writes the reports of the coverage of several processes.
     *
     * @param array<string, mixed> $order
     */
    private static function merge(array $order): void
    {
        $all = null;
        foreach ($order['files'] as $file) {
            $one = include $file;
            $all === null ? $all = $one : $all->merge($one);
        }
        $reports = [
            'clover' => Report\Clover::class,
            'cobertura' => Report\Cobertura::class,
            'php' => Report\PHP::class,
            'html' => Report\Html\Facade::class,
        ];
        foreach ($reports as $name => $class) {
            if ($order[$name] !== null) {
                (new $class())->process($all, $order[$name]);
            }
        }
    }

    /** @param array<string, mixed> $order */
    private static function enter(array $order): void
    {
        $arguments = [self::$plan['script'], ...$order['arguments']];
        $_SERVER['argv'] = $GLOBALS['argv'] = $arguments;
        $_SERVER['argc'] = $GLOBALS['argc'] = count($arguments);
        $_SERVER['REQUEST_TIME_FLOAT'] = microtime(true);
        $_SERVER['REQUEST_TIME'] = (int) $_SERVER['REQUEST_TIME_FLOAT'];
        foreach ($order['environment'] as $name => $value) {
            putenv("$name=$value");
            $_SERVER[$name] = $value;
            if ($_ENV !== []) {
                $_ENV[$name] = $value;
            }
        }
        // Tests with a process of their own include all files of this one, but not these.
        foreach (['__PHPUNIT_ISOLATION_EXCLUDE_LIST', '__PHPUNIT_ISOLATION_BLACKLIST'] as $list) {
            $own = [__FILE__, self::$plan['script'], (string) realpath(self::$plan['script'])];
            $GLOBALS[$list] = [...($GLOBALS[$list] ?? []), ...$own];
        }
        if (self::$plan['before'] !== null && $order['isUnit']) {
            self::command(self::$plan['before']);
        }
        if (isset($order['configuration'])) {
            self::writeConfiguration($order['configuration']);
        }
        if (isset($order['units'])) {
            self::atEnd([self::class, 'listUnits'], $order);
        }
        if (isset($order['learned'])) {
            self::atEnd([self::class, 'learn'], $order['learned']);
        }
        if (self::$plan['after'] !== null && $order['isUnit']) {
            self::atEnd([self::class, 'command'], self::$plan['after']);
        }
    }

    /**
     * Calls a function at the end of this process, and not of those that tests fork.
     *
     * @param mixed $argument
     */
    private static function atEnd(callable $function, $argument): void
    {
        $pid = getmypid();
        register_shutdown_function(static function () use ($pid, $function, $argument): void {
            if (getmypid() === $pid) {
                $function($argument);
            }
        });
    }

    /** Runs a command of the user before or after a unit. */
    public static function command(string $command): void
    {
        passthru($command, $status);
        if ($status !== 0) {
            fwrite(STDERR, "samovar: the command `$command` failed with status $status\n");
            exit(2);
        }
    }

    /** @return array<string, mixed> */
    private static function read(string $file): array
    {
        return json_decode((string) file_get_contents($file), true, 512, JSON_THROW_ON_ERROR);
    }

    /** Includes a file as PHPUnit 9 does: its variables become global. */
    private static function load(string $file): void
    {
        (static function () use ($file): void {
            include_once $file;
            foreach (array_diff(array_keys(get_defined_vars()), ['file']) as $name) {
                $GLOBALS[$name] = $$name;
            }
        })();
    }

    /** Applies the element `php` of phpunit.xml, which takes effect before the bootstrap. */
    private static function applyPhpSection(string $file): void
    {
        $document = new \DOMDocument();
        if (!@$document->load($file)) {
            return; // The framework reports the error.
        }
        foreach ((new \DOMXPath($document))->query('/phpunit/php/*') as $node) {
            $name = $node->getAttribute('name');
            $value = self::typed($node->getAttribute('value'));
            $isForced = $node->getAttribute('force') === 'true';
            switch ($node->localName) {
                case 'includePath':
                    $path = self::absolute($node->textContent, dirname($file));
                    ini_set('include_path', $path . PATH_SEPARATOR . ini_get('include_path'));
                    break;
                case 'ini':
                    $own = (string) $node->getAttribute('value');
                    ini_set($name, defined($own) ? (string) constant($own) : $own);
                    break;
                case 'const':
                    defined($name) || define($name, $value);
                    break;
                case 'env':
                    if ($isForced || getenv($name) === false) {
                        putenv("$name=$value");
                    }
                    if ($isForced || !isset($_ENV[$name])) {
                        $_ENV[$name] = getenv($name);
                    }
                    break;
                case 'var':
                    $GLOBALS[$name] = $value;
                    break;
                case 'server':
                    $_SERVER[$name] = $value;
                    break;
                case 'get':
                    $_GET[$name] = $value;
                    break;
                case 'post':
                    $_POST[$name] = $value;
                    break;
                case 'cookie':
                    $_COOKIE[$name] = $value;
                    break;
                case 'files':
                    $_FILES[$name] = $value;
                    break;
                case 'request':
                    $_REQUEST[$name] = $value;
                    break;
            }
        }
    }

    /** @return bool|string */
    private static function typed(string $text)
    {
        return ['true' => true, 'false' => false][strtolower($text)] ?? $text;
    }

    private static function absolute(string $path, string $folder): string
    {
        $path = trim($path);
        return $path === '' || $path[0] === '/' || strpos($path, '://') ? $path : "$folder/$path";
    }

    /** @param list<string> $classes */
    private static function preload(array $classes): void
    {
        foreach (array_slice($classes, 0, self::CLASSES_MAX) as $class) {
            try {
                class_exists($class) || interface_exists($class) || trait_exists($class);
            } catch (\Throwable $error) {
                // It cannot be loaded without the classes of the tests.
            }
        }
    }

    /** Writes the list of loaded classes that later forks may find loaded. */
    public static function learn(string $to): void
    {
        $all = [...get_declared_interfaces(), ...get_declared_traits(), ...get_declared_classes()];
        $own = array_filter($all, static fn(string $class): bool => self::isShared($class));
        self::write($to, ['classes' => array_slice(array_values($own), 0, self::CLASSES_MAX)]);
    }

    private static function isShared(string $class): bool
    {
        $file = (new \ReflectionClass($class))->getFileName();
        if ($file === false || strpos($class, '@anonymous') || strpos($file, "eval()'d")) {
            return false;
        }
        return preg_match(self::FRAMEWORK, $class) === 1
            || (self::$plan['preload'] && strpos($file, self::$plan['vendor']) === 0);
    }

    /**
     * Reads the framework's list of tests and writes the units: classes with their files.
     *
     * @param array<string, mixed> $order
     */
    public static function listUnits(array $order): void
    {
        $document = new \DOMDocument();
        // The framework writes names of data sets as they are. XML has no control characters, and
        // no bytes that are not UTF-8.
        $text = is_file($order['list']) ? (string) file_get_contents($order['list']) : '';
        $text = (string) preg_replace(self::NO_UTF8, '?', $text);
        $text = preg_replace('/[\x00-\x08\x0B\x0C\x0E-\x1F]/', '?', $text);
        $isListed = $text !== '' && @$document->loadXML((string) $text, LIBXML_PARSEHUGE);
        $fatal = E_ERROR | E_PARSE | E_CORE_ERROR | E_COMPILE_ERROR;
        if (!$isListed && ((error_get_last()['type'] ?? 0) & $fatal) !== 0) {
            return;
        }
        $filter = new Filter($order['filter'] ?? '');
        $units = [];
        foreach ($isListed ? (new \DOMXPath($document))->query('//*') : [] as $node) {
            if (in_array($node->localName, ['testCaseClass', 'testClass'], true)) {
                $class = $node->getAttribute('name');
                $file = self::fileOf($class);
                if ($file !== null) {
                    $known = $units[$class]['methods'] ?? [];
                    $methods = self::methodsOf($node, $class, $filter);
                    $all = array_values(array_unique([...$known, ...$methods]));
                    $units[$class] = [
                        'class' => $class,
                        'file' => $file,
                        'methods' => $all,
                        'tests' => count($methods) + ($units[$class]['tests'] ?? 0),
                        'depends' => (object) self::dependencies($class, $all),
                    ];
                }
            } elseif (in_array($node->localName, ['phptFile', 'phpt'], true)) {
                $file = $node->getAttribute('path');
                $units[$file] = ['class' => null, 'file' => $file, 'methods' => [], 'tests' => 1];
            }
        }
        // Classes whose data providers fail, or that have no test, are not in the list. PHPUnit 11
        // and later write no list at all if a data provider fails.
        foreach (get_declared_classes() as $class) {
            if (!isset($units[$class]) && self::isTestOfProject($class)) {
                $methods = $isListed ? [] : self::testMethods($class);
                $units[$class] = [
                    'class' => $class,
                    'file' => (string) (new \ReflectionClass($class))->getFileName(),
                    'methods' => $methods,
                    'tests' => count($methods),
                    'depends' => (object) self::dependencies($class, $methods),
                ];
            }
        }
        if (!$isListed && $units === []) {
            return;
        }
        self::write($order['units'], ['units' => array_values($units)]);
    }

    /**
     * Returns the tests that the methods of a class depend on.
     *
     * @param list<string> $methods
     *
     * @return array<string, list<string>>
     */
    private static function dependencies(string $class, array $methods): array
    {
        $all = [];
        $reflection = new \ReflectionClass($class);
        $ofClass = self::dependenciesOf($reflection, $class);
        foreach ($methods as $name) {
            $method = $reflection->hasMethod($name) ? $reflection->getMethod($name) : null;
            $own = $method === null ? [] : self::dependenciesOf($method, $class);
            if ($ofClass !== [] || $own !== []) {
                $all[$name] = [...$ofClass, ...$own];
            }
        }
        return $all;
    }

    /**
     * Reads the annotation `@depends` and the attributes `Depends…` of PHPUnit 10 and later.
     *
     * @param \ReflectionClass<object>|\ReflectionMethod $of
     *
     * @return list<string>
     */
    private static function dependenciesOf($of, string $class): array
    {
        $targets = [];
        $option = '(?:!?(?:clone|shallowClone)[ \t]+)?';
        $pattern = "/@depends[ \\t]+$option(\\S+?)[ \\t]*(?:\\*+\\/)?[ \\t]*\\r?$/m";
        preg_match_all($pattern, (string) $of->getDocComment(), $found);
        foreach ($found[1] as $target) {
            $targets[] = strpos($target, '::') === false ? "$class::$target" : $target;
        }
        $attributes = method_exists($of, 'getAttributes') ? $of->getAttributes() : [];
        foreach ($attributes as $attribute) {
            $pattern = '/^PHPUnit\\\\Framework\\\\Attributes\\\\Depends(External|OnClass)?/';
            if (preg_match($pattern, $attribute->getName(), $kind) !== 1) {
                continue;
            }
            $words = array_values($attribute->getArguments());
            $words = array_map(static fn($word): string => ltrim((string) $word, '\\'), $words);
            if (($kind[1] ?? '') === 'External' && isset($words[1])) {
                $targets[] = "$words[0]::$words[1]";
            } elseif (isset($words[0])) {
                $targets[] = ($kind[1] ?? '') === '' ? "$class::$words[0]" : "$words[0]::class";
            }
        }
        return $targets;
    }

    /** @return list<string> The methods of a class that are tests. */
    private static function testMethods(string $class): array
    {
        $methods = [];
        $all = (new \ReflectionClass($class))->getMethods(\ReflectionMethod::IS_PUBLIC);
        foreach ($all as $method) {
            $isTest = strpos($method->getName(), 'test') === 0
                || preg_match('/@test\b/', (string) $method->getDocComment()) === 1
                || (method_exists($method, 'getAttributes')
                    && $method->getAttributes('PHPUnit\Framework\Attributes\Test') !== []);
            if ($isTest && !$method->isStatic() && !$method->isAbstract()) {
                $methods[] = $method->getName();
            }
        }
        return $methods;
    }

    private static function isTestOfProject(string $class): bool
    {
        $type = 'PHPUnit\Framework\TestCase';
        if (!class_exists($type, false) || !is_subclass_of($class, $type)) {
            return false;
        }
        $reflection = new \ReflectionClass($class);
        $file = (string) $reflection->getFileName();
        return !$reflection->isAbstract()
            && substr($file, -8) === 'Test.php'
            && strpos($file, self::$plan['vendor']) !== 0
            && basename($file, '.php') === $reflection->getShortName();
    }

    private static function fileOf(string $class): ?string
    {
        if (!class_exists($class) || preg_match(self::FRAMEWORK, $class)) {
            return null;
        }
        $reflection = new \ReflectionClass($class);
        if (strpos($class, self::PEST) === 0 && $reflection->hasProperty('__filename')) {
            $property = $reflection->getProperty('__filename');
            $property->setAccessible(true);
            return (string) $property->getValue();
        }
        return $reflection->getFileName() ?: null;
    }

    /** @return list<string> The methods of all data sets that the filter accepts. */
    private static function methodsOf(\DOMElement $node, string $class, Filter $filter): array
    {
        $methods = [];
        foreach ($node->childNodes as $test) {
            if (in_array($test->localName, ['testCaseMethod', 'testMethod'], true)) {
                $method = $test->getAttribute('name');
                $set = preg_replace('/^\s*with data set /', '', $test->getAttribute('dataSet'));
                if ($filter->accepts("$class::$method", (string) $set)) {
                    $methods[] = $method;
                }
            }
        }
        return $methods;
    }

    /**
     * Writes a copy of phpunit.xml whose only test suite consists of a unit's files. So the
     * framework finds all test classes of the files, as it does for a folder.
     *
     * @param array<string, mixed> $order
     */
    private static function writeConfiguration(array $order): void
    {
        $document = new \DOMDocument();
        $from = self::$plan['configuration'];
        $isGiven = $from !== null && @$document->load($from);
        if (!$isGiven) {
            $document->appendChild($document->createElement('phpunit'));
        }
        $root = $document->documentElement;
        $folder = $isGiven ? dirname((string) $from) : '';
        $query = new \DOMXPath($document);
        if ($isGiven) {
            $paths = '//@bootstrap | //@cacheDirectory | //@cacheResultFile';
            foreach ($query->query($paths) as $path) {
                $path->value = htmlspecialchars(self::absolute($path->value, $folder));
            }
            foreach ($query->query('//directory | //file | //includePath') as $node) {
                $path = self::absolute($node->textContent, $folder);
                $node->textContent = $path;
            }
        }
        $replaced = '/phpunit/testsuites | /phpunit/logging | /phpunit/coverage/report';
        foreach (iterator_to_array($query->query($replaced)) as $node) {
            $node->parentNode->removeChild($node);
        }
        if (!$order['hasUncovered']) {
            foreach ($query->query('/phpunit/coverage') as $node) {
                $node->removeAttribute('processUncoveredFiles');
                $node->setAttribute('includeUncoveredFiles', 'false');
            }
        }
        $suite = $document->createElement('testsuite');
        $suite->setAttribute('name', $order['name']);
        foreach ($order['files'] as $file) {
            $suite->appendChild($document->createElement('file'))->textContent = $file;
        }
        $root->appendChild($document->createElement('testsuites'))->appendChild($suite);
        $document->save($order['to']);
    }

    /** @param array<string, mixed> $value */
    private static function write(string $file, array $value): void
    {
        $flags = JSON_THROW_ON_ERROR | JSON_INVALID_UTF8_SUBSTITUTE;
        file_put_contents("$file.new", json_encode($value, $flags));
        rename("$file.new", $file);
    }
}

/** The option `--filter`, as PHPUnit reads it. */
final class Filter
{
    private string $pattern;
    private int $min = 0;
    private int $max = PHP_INT_MAX;

    public function __construct(string $filter)
    {
        if ($filter !== '' && @preg_match($filter, '') === false) {
            $name = '.*with data set ';
            if (preg_match('/^(.*?)#(\d+)(?:-(\d+))?$/', $filter, $parts)) {
                $isRange = isset($parts[3]) && $parts[2] < $parts[3];
                if ($isRange) {
                    [$this->min, $this->max] = [(int) $parts[2], (int) $parts[3]];
                }
                $filter = $parts[1] . $name . '#' . ($isRange ? '(\d+)' : $parts[2]) . '$';
            } elseif (preg_match('/^(.*?)@(.+)$/', $filter, $parts)) {
                $filter = $parts[1] . $name . '"' . $parts[2] . '"$';
            }
            $filter = '/' . str_replace('/', '\\/', $filter) . '/i';
        }
        $this->pattern = $filter;
    }

    public function accepts(string $test, string $set): bool
    {
        // A name whose characters the list cannot contain is not known.
        if ($this->pattern === '' || strpbrk($set, '?') !== false) {
            return true;
        }
        $name = $set === '' ? $test : "$test with data set $set";
        $isFound = @preg_match($this->pattern, $name, $found) === 1;
        if (!$isFound || $this->max === PHP_INT_MAX) {
            return $isFound;
        }
        return end($found) >= $this->min && end($found) <= $this->max;
    }
}

Driver::boot();
return require Driver::take();
