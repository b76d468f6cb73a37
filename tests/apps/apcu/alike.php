<?php

/*
 * Calls all functions of the apcu extension, and prints a JSON object with the result and the
 * warnings of each case. The output must be the same with the extension and with Samovar, in any
 * order of the two.
 */

declare(strict_types=1);

final class Point
{
    public ?Point $next = null;

    public function __construct(public int $x = 0, private string $secret = 'kept')
    {
    }
}

final class Woken
{
    public int $times = 0;

    /** Uses the cache while it is being fetched. */
    public function __wakeup(): void
    {
        apcu_store('woken', str_repeat('w', 100));
        $this->times = (int) apcu_inc('wakings');
    }
}

final class Unwilling
{
    public function __serialize(): array
    {
        throw new LogicException('not me');
    }
}

final class Silent extends APCUIterator
{
    public function __construct()
    {
    }
}

enum Suit: string
{
    case Hearts = 'h';
}

/** Seconds and sizes differ between the servers. */
function shape(array $info): array
{
    return array_map(fn (mixed $value): string => get_debug_type($value), $info);
}

/** @return array<string, mixed> by key, in its order */
function walk(APCUIterator $iterator): array
{
    $found = iterator_to_array($iterator);
    ksort($found, SORT_STRING);

    return $found;
}

function until(callable $holds): bool
{
    for ($i = 0; $i < 1000; $i++) {
        if ($holds()) {
            return true;
        }
        usleep(10_000);
    }

    return false;
}

function with_success(string $key): array
{
    $success = 'not said';
    $value = apcu_fetch($key, $success);

    return [$value, $success];
}

function counted(callable $count, string $key, mixed ...$more): array
{
    $success = 'not said';
    $sum = $count($key, $more[0] ?? 1, $success, $more[1] ?? 0);

    return [$sum, $success, apcu_fetch($key)];
}

$values = [
    'null' => null, 'true' => true, 'false' => false, 'zero' => 0, 'most' => PHP_INT_MAX, 'least' => PHP_INT_MIN,
    'half' => 0.5, 'third' => 1 / 3, 'infinite' => INF, 'minus zero' => -0.0, 'empty' => '', 'text' => 'some text',
    'bytes' => "\0\xff\n", 'long' => str_repeat('long ', 10_000), 'list' => [1, 'two', 3.0, null, [true]],
    'map' => ['a' => 1, 5 => 'five', '' => []], 'no list' => [], 'object' => new Point(3), 'objects' => [new Point(1), new Point(2)],
    'suit' => Suit::Hearts, 'time' => new DateTimeImmutable('2024-02-29 12:00', new DateTimeZone('UTC')),
    'std' => (object) ['a' => [1, 2]], 'spl' => new ArrayObject([1, 2]),
];

$questions = [
    'enabled' => fn () => [apcu_enabled(), extension_loaded('apcu'), phpversion('apcu'), ini_get('apc.enabled')],
    'constants' => fn () => array_filter(
        get_defined_constants(true)['apcu'],
        fn (string $name): bool => str_starts_with($name, 'APC_'),
        ARRAY_FILTER_USE_KEY,
    ),
    'signatures' => fn () => array_map(
        fn (ReflectionFunction $function): array => array_map(
            fn (ReflectionParameter $one): string => $one->getType() . ($one->isPassedByReference() ? ' &' : ' ')
                . $one->getName() . ($one->isOptional() ? ' ?' : ''),
            $function->getParameters(),
        ) + ['returns' => (string) $function->getReturnType()],
        (new ReflectionExtension('apcu'))->getFunctions(),
    ),
    'methods' => fn () => array_map(
        fn (ReflectionMethod $method): string => "{$method->getName()} {$method->getNumberOfParameters()}"
            . " {$method->getNumberOfRequiredParameters()} {$method->getReturnType()}",
        (new ReflectionClass('APCUIterator'))->getMethods(),
    ),
    'values' => fn () => array_map(function (string $key) use ($values): array {
        $stored = apcu_store("value $key", $values[$key]);
        $found = apcu_fetch("value $key", $success);

        return [$key, $stored, $success, var_export($found, true), serialize($found) === serialize($values[$key])];
    }, array_keys($values)),
    'many values' => fn () => [apcu_store($values), serialize(apcu_fetch(array_keys($values))) === serialize($values)],
    'nothing' => fn () => [with_success('nothing'), apcu_exists('nothing'), apcu_delete('nothing')],
    'false is there' => fn () => [apcu_store('false', false), with_success('false')],
    'replaced' => fn () => [apcu_store('r', 1), apcu_store('r', 'two'), apcu_fetch('r')],
    'added' => fn () => [apcu_add('added', 1), apcu_add('added', 2), apcu_fetch('added'), apcu_add('null', 1)],
    'added many' => fn () => [apcu_add(['added' => 5, 'new' => 6, 7 => 'seven']), apcu_fetch(['added', 'new', '7'])],
    'stored many' => fn () => [apcu_store(['a' => 1, 8 => 'x', '9' => null]), apcu_fetch(['a', '8', '9', 'none'])],
    'stored none' => fn () => [apcu_store([]), apcu_fetch([]), apcu_exists([]), apcu_delete([])],
    'no value' => fn () => [apcu_store('no value'), apcu_exists('no value'), apcu_add('no value')],
    'existing' => fn () => [apcu_store('e', 1), apcu_exists('e'), apcu_exists(['e', 'none', 'a', 'e2'])],
    'deleted' => fn () => [apcu_delete('e'), apcu_delete('e'), apcu_delete(['a', 'none', '8']), apcu_exists(['a', '8'])],
    'wrong keys' => fn () => [apcu_store(5, 1), apcu_store(null, 1), apcu_store(1.5, 1), apcu_delete(5), apcu_delete(null)],
    'numbers as keys' => fn () => [apcu_store('5', 'five'), apcu_fetch(5), apcu_exists(5), apcu_fetch(true)],
    'wrong keys among' => fn () => [
        apcu_fetch(['5', 5, null, [], new Point()]), apcu_exists(['5', 5, 1.5]), apcu_delete(['5', 5, 'none', 1.5]),
    ],
    'odd keys' => fn () => array_map(
        fn (string $key): array => [apcu_store($key, $key), apcu_fetch($key) === $key, apcu_exists($key), apcu_delete($key)],
        ['', ' ', "\0", "a\0b", 'a/b:c', str_repeat('k', 300), str_repeat('k', 70_000), "\xff\xfe", 'ü'],
    ),
    'types of arguments' => fn () => [
        apcu_inc(...), fn () => apcu_inc([]), fn () => apcu_inc('a', 'one'), fn () => apcu_cas('a', 'b', 1),
        fn () => apcu_entry('a', 'no function'), fn () => apcu_store(), fn () => apcu_store('a', 1, 'ttl'),
        fn () => apcu_fetch(new Point()), fn () => apcu_exists(new Point()), fn () => apcu_key_info([]), fn () => apcu_fetch('a', 1, 2),
        fn () => apcu_clear_cache(1), fn () => new APCUIterator(format: 'all'),
    ],
    'incremented' => fn () => [counted(apcu_inc(...), 'i'), counted(apcu_inc(...), 'i', 5), counted(apcu_inc(...), 'i', -10)],
    'decremented' => fn () => [counted(apcu_dec(...), 'd'), counted(apcu_dec(...), 'd', 5), counted(apcu_dec(...), 'd', -10)],
    'beyond' => fn () => [
        apcu_store('most', PHP_INT_MAX), counted(apcu_inc(...), 'most'), apcu_store('least', PHP_INT_MIN),
        counted(apcu_dec(...), 'least'), counted(apcu_dec(...), 'by least', PHP_INT_MIN),
    ],
    'no numbers' => fn () => array_map(
        fn (mixed $value): array => [
            apcu_store('no number', $value), counted(apcu_inc(...), 'no number'), counted(apcu_dec(...), 'no number', 2),
            apcu_cas('no number', 0, 1),
        ],
        ['5', '', 'text', 1.0, true, null, [1]],
    ),
    'exchanged' => fn () => [
        apcu_cas('none', 0, 1), apcu_store('cas', 5), apcu_cas('cas', 4, 6), apcu_cas('cas', 5, 6), apcu_fetch('cas'),
    ],
    'no resource' => fn () => [apcu_store('resource', fopen('php://memory', 'r')), with_success('resource')],
    'resource within' => fn () => [apcu_store('within', [fopen('php://memory', 'r')]), apcu_fetch('within')],
    'no closure' => fn () => apcu_store('closure', fn () => 1),
    'no closure within' => fn () => apcu_store('closure', ['a' => [fn () => 1]]),
    'unwilling' => fn () => apcu_store('unwilling', new Unwilling()),
    'after what failed' => fn () => [apcu_exists(['closure', 'unwilling', 'resource'])],
    'waking' => fn () => [apcu_store('waking', [new Woken(), 'x']), apcu_fetch('waking')[0]->times, apcu_fetch(['waking', 'woken'])],
    'references' => function () {
        $one = 1;
        $list = [&$one, &$one, 'by value' => $one];
        apcu_store('references', $list);
        $one = 2;
        $found = apcu_fetch('references');
        $found[0] = 'changed';

        return [$found, apcu_fetch('references'), $list[0]];
    },
    'itself' => function () {
        $list = ['x'];
        $list['itself'] = &$list;
        $point = new Point(1);
        $point->next = $point;
        $found = [apcu_store('list', $list), apcu_store('point', $point)];
        $again = apcu_fetch('point');

        return [$found, apcu_fetch('list')['itself']['itself'][0], $again->next === $again, $again !== $point];
    },
    'reference to a value' => function () {
        $value = 'one';
        $reference = &$value;
        $stored = apcu_store('reference', $reference);
        $value = 'two';

        return [$stored, apcu_fetch('reference')];
    },
    'copies' => function () {
        apcu_store('copied', new Point(1));
        $copy = apcu_fetch('copied');
        $copy->x = 2;

        return [apcu_fetch('copied')->x, apcu_fetch('copied') === apcu_fetch('copied')];
    },
    'entry' => fn () => [
        apcu_entry('entry', fn (string ...$keys) => ['made of', $keys]), apcu_entry('entry', fn () => 'again'), apcu_fetch('entry'),
    ],
    'entry of null' => fn () => [apcu_entry('entry null', fn () => null), apcu_exists('entry null'), apcu_entry('entry null', fn () => 1)],
    'entry in entry' => fn () => [
        apcu_entry('outer', fn () => 'outer ' . apcu_entry('inner', fn () => 'inner ' . apcu_entry('innermost', fn () => 'x'))),
        apcu_fetch(['outer', 'inner', 'innermost']),
    ],
    'entry of itself' => fn () => [
        apcu_entry('same', fn (string $key) => 'first ' . apcu_entry($key, fn () => 'second')), apcu_fetch('same'),
    ],
    'entry that uses the cache' => fn () => [
        apcu_entry('uses', function (string $key) {
            return [apcu_exists($key), apcu_store('beside', 1), apcu_fetch('beside'), apcu_inc('beside'), apcu_delete('beside')];
        }),
    ],
    'entry that throws' => fn () => apcu_entry('throws', fn () => throw new DomainException('from within')),
    'after it threw' => fn () => [apcu_exists('throws'), apcu_entry('throws', fn () => 'made after all')],
    'entry that cannot be stored' => fn () => [apcu_entry('unstored', fn () => fopen('php://memory', 'r')) !== null, apcu_exists('unstored')],
    'time to live' => fn () => [
        apcu_store('short', 'x', 1), apcu_fetch('short'), apcu_key_info('short')['ttl'], apcu_inc('short number', 5, $success, 1), $success,
        apcu_entry('short entry', fn () => 1, 1), apcu_add('short added', 1, 1), apcu_store(['short one of' => 1], null, 1),
        until(fn () => apcu_exists(['short', 'short number', 'short entry', 'short added', 'short one of']) === []),
        with_success('short'), apcu_add('short', 'again', 100), apcu_fetch('short'),
        apcu_cas('short number', 5, 6), apcu_inc('short number'), walk(new APCUIterator('/^short (added|one)/')),
    ],
    'times that are odd' => fn () => [
        apcu_store('negative', 1, -1), until(fn () => !apcu_exists('negative')), apcu_store('huge', 1, 1_000_000_000), apcu_exists('huge'),
        apcu_key_info('huge')['ttl'],
    ],
    'a count keeps its time' => fn () => [apcu_store('kept', 1, 50), apcu_inc('kept', 1, $success, 500), apcu_key_info('kept')['ttl']],
    'info of a key' => fn () => [
        apcu_store('info', 1, 60), shape(apcu_key_info('info')), apcu_key_info('info')['hits'], apcu_fetch('info'),
        apcu_key_info('info')['hits'], apcu_key_info('no such'),
    ],
    'cleared' => fn () => [apcu_clear_cache(), apcu_exists(['info', 'kept', 'entry']), apcu_cache_info(true)['num_entries']],
    'info' => fn () => [
        apcu_store('only', [1, 2], 60), shape(apcu_cache_info(true)), array_keys(apcu_cache_info()), apcu_cache_info()['num_entries'],
        array_keys(apcu_cache_info()['cache_list'][0]), shape(apcu_cache_info()['cache_list'][0]),
        array_sum(apcu_cache_info()['slot_distribution']), apcu_cache_info()['deleted_list'], apcu_cache_info()['cache_list'][0]['info'],
    ],
    'hits and misses' => function () {
        $before = apcu_cache_info(true);
        apcu_fetch('only');
        apcu_fetch('only');
        apcu_fetch('not there');
        apcu_exists('only');
        apcu_fetch(['only', 'nor this']);
        apcu_store('only', 3);
        $after = apcu_cache_info(true);

        return array_map(fn (string $name) => $after[$name] - $before[$name], ['num_hits', 'num_misses', 'num_inserts', 'expunges']);
    },
    'memory' => fn () => [shape(apcu_sma_info(true)), shape(apcu_sma_info()), apcu_sma_info()['avail_mem'] <= apcu_sma_info()['seg_size']],
    'walked' => fn () => [
        apcu_clear_cache(), apcu_store(['a 1' => 'one', 'a 2' => new Point(2), 'b 1' => null, 'B' => [], '7' => 7]),
        array_keys(walk(new APCUIterator())), walk(new APCUIterator('/^a/', APC_ITER_KEY | APC_ITER_VALUE)),
        array_keys(walk(new APCUIterator('/b/i'))), array_keys(walk(new APCUIterator(['B', 'a 1', 'none', '7', 7]))),
        walk(new APCUIterator([])), array_keys(walk(new APCUIterator(''))), array_keys(walk(new APCUIterator(null, APC_ITER_ALL, 1))),
        walk(new APCUIterator(null, APC_ITER_ALL, 0, APC_LIST_DELETED)), array_keys(walk(new APCUIterator(5))),
    ],
    'formats' => fn () => array_map(
        fn (int $format): array => array_map(fn (array $one): array => shape($one), walk(new APCUIterator('/^a 1/', $format))),
        [0, 1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024, 2048, APC_ITER_ALL, APC_ITER_KEY | APC_ITER_TTL, -1],
    ),
    'totals' => function () {
        $all = new APCUIterator();
        $some = new APCUIterator('/^a/');
        apcu_fetch('a 1');

        return [$all->getTotalCount(), $some->getTotalCount(), $some->getTotalHits(), $all->getTotalSize() > $some->getTotalSize()];
    },
    'by hand' => function () {
        $iterator = new APCUIterator('/^a/');
        $keys = [$iterator->key(), $iterator->key(), $iterator->current()['key'], $iterator->valid()];
        $iterator->next();
        $keys[] = $iterator->key();
        $iterator->next();
        $keys[] = $iterator->valid();
        $iterator->next();
        $iterator->rewind();
        sort($keys);

        return [array_map(fn (mixed $key) => is_string($key) ? substr($key, 0, 1) : $key, $keys), $iterator->valid()];
    },
    'beyond the end' => function () {
        $iterator = new APCUIterator('/none/');

        return [$iterator->valid(), $iterator->next(), $iterator->current()];
    },
    'key beyond the end' => fn () => (new APCUIterator('/none/'))->key(),
    'deleted on the way' => function () {
        foreach (new APCUIterator('/^a/') as $key => $_) {
            $deleted[] = apcu_delete($key);
        }

        return [$deleted, apcu_exists(['a 1', 'a 2', 'b 1'])];
    },
    'deleted at once' => fn () => [
        apcu_delete(new APCUIterator('/^b/')), apcu_exists(['b 1', 'B']), apcu_delete(new APCUIterator('/none/')),
        apcu_delete(new APCUIterator()), apcu_cache_info(true)['num_entries'],
    ],
    'not made' => fn () => (new Silent())->valid(),
    'not made, deleted' => fn () => apcu_delete(new Silent()),
    'not copied' => fn () => clone new APCUIterator(),
    'no list' => fn () => (new APCUIterator(null, 1, 0, 7))->valid(),
    'is an iterator' => fn () => [class_implements('APCUIterator'), (new ReflectionClass('APCUIterator'))->isFinal()],
    'many' => function () {
        for ($i = 0; $i < 2000; $i++) {
            apcu_store("many $i", $i);
        }
        $keys = array_map(fn (int $i): string => "many $i", range(0, 1999));

        return [
            array_sum(apcu_fetch($keys)), count(apcu_exists($keys)), (new APCUIterator('/^many /'))->getTotalCount(),
            array_sum(array_column(iterator_to_array(new APCUIterator('/^many /', APC_ITER_VALUE, 10)), 'value')),
            count(apcu_delete([...$keys, 'none'])), apcu_exists('many 7'),
        ];
    },
];

/** @return list<mixed> the result, and the messages raised meanwhile */
function answer(callable $question): array
{
    $said = [];
    set_error_handler(function (int $level, string $message) use (&$said): bool {
        $said[] = [$level, $message];

        return true;
    });
    try {
        $answer = $question();
    } catch (Throwable $thrown) {
        $answer = [$thrown::class, $thrown->getMessage()];
    }
    restore_error_handler();

    return [$answer, $said];
}

$answers = [];
foreach ($questions as $name => $question) {
    if ($name === 'types of arguments') {
        $answers[$name] = array_map(answer(...), array_slice($question(), 1));
    } else {
        $answers[$name] = answer($question);
    }
}
header('Content-Type: application/json');
$text = json_encode(
    array_map(fn (array $answer): string => var_export($answer, true), $answers),
    JSON_THROW_ON_ERROR | JSON_INVALID_UTF8_SUBSTITUTE,
);
echo $text;
