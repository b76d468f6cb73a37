<?php

/*
 * The functions of the apcu extension as applications and libraries use them. Each path does one
 * operation and responds with the result. MODEL sets the execution model.
 */

declare(strict_types=1);

/** Returns the failed checks of a library. */
function faults(array $checks): array
{
    return array_keys(array_filter($checks, fn (bool $check): bool => !$check));
}

/** Tests Symfony's adapter. `cache.system` also calls its isSupported(). */
function with_symfony(): array
{
    require_once 'Symfony/Component/Cache/autoload.php';
    $made = 0;
    $make = function ($item) use (&$made): array {
        $item->expiresAfter(60);
        $made++;

        return ['made' => $made];
    };
    $pool = new Symfony\Component\Cache\Adapter\ApcuAdapter('shop', 0, 'v1');
    $first = $pool->get('rates', $make);
    $item = $pool->getItem('list');
    $saved = $pool->save($item->set([1, 2, 3]));
    $other = new Symfony\Component\Cache\Adapter\ApcuAdapter('other');
    $other->get('rates', fn () => 'others');
    $checks = [
        'is supported' => Symfony\Component\Cache\Adapter\ApcuAdapter::isSupported(),
        'is made once' => $pool->get('rates', $make) === $first && $made <= 1,
        'is saved' => $saved && $pool->getItem('list')->get() === [1, 2, 3],
        'several' => array_keys(iterator_to_array($pool->getItems(['list', 'none']))) === ['list', 'none'],
        'is a hit' => $pool->hasItem('list') && !$pool->hasItem('none'),
        'is deleted' => $pool->deleteItem('list') && !$pool->hasItem('list'),
        'is cleared' => $pool->clear() && !$pool->hasItem('rates'),
        'others are left' => $other->get('rates', fn () => 'gone') === 'others',
    ];
    $other->clear();

    return faults($checks);
}

/** Tests Laravel's store `apc`. */
function with_laravel(): array
{
    require_once 'Illuminate/autoload.php';
    $store = new Illuminate\Cache\ApcStore(new Illuminate\Cache\ApcWrapper(), 'laravel_');
    $cache = new Illuminate\Cache\Repository($store);
    $cache->put('n', 5, 60);
    $checks = [
        'is there' => $cache->get('n') === 5 && $cache->get('none', 'default') === 'default',
        'is counted' => $cache->increment('n', 2) === 7 && $cache->decrement('n') === 6,
        'several' => $cache->many(['n', 'none']) === ['n' => 6, 'none' => null],
        'is remembered' => $cache->remember('made', 60, fn () => ['x']) === ['x'] && $cache->get('made') === ['x'],
        'is for ever' => $cache->forever('always', 1) && $cache->has('always'),
        'is forgotten' => $cache->forget('n') && $cache->missing('n'),
        'is flushed' => $store->flush() && $cache->missing('made'),
    ];

    return faults($checks);
}

/** Tests Composer's class loader, which stores the paths of classes. */
function with_composer(): array
{
    require_once 'Composer/Autoload/ClassLoader.php';
    $loader = new Composer\Autoload\ClassLoader();
    $loader->addPsr4('Kept\\', __DIR__ . '/kept');
    $loader->setApcuPrefix('composer');
    $again = new Composer\Autoload\ClassLoader();
    $again->setApcuPrefix('composer');
    $file = $loader->findFile('Kept\\One');
    $checks = [
        'takes it' => $loader->getApcuPrefix() === 'composer',
        'finds' => $file === __DIR__ . '/kept/One.php',
        'keeps what was found' => $again->findFile('Kept\\One') === $file,
        'keeps what is not there' => $loader->findFile('Kept\\None') === false && apcu_fetch('composerKept\\None') === false,
    ];
    apcu_delete('composerKept\\One');

    return faults($checks);
}

/**
 * One request makes the value, and the others wait. Each returns the value and whether it was the
 * maker.
 */
function entry(): array
{
    $was_maker = false;
    $made = apcu_entry('slow', function () use (&$was_maker): int {
        $was_maker = true;
        usleep(100_000);

        return (int) apcu_inc('makers');
    });

    return [$made, $was_maker, getmypid()];
}

/**
 * Stores far more than there is room for. The last value must be present, and all present values
 * must be correct.
 */
function flood(): array
{
    $text = fn (int $i): string => str_repeat(chr(97 + $i % 26), 500 + $i % 1000);
    for ($i = 0; $i < 4000; $i++) {
        apcu_store("flood $i", [$i, $text($i)]);
    }
    $wrong = 0;
    $found = 0;
    for ($i = 0; $i < 4000; $i++) {
        $value = apcu_fetch("flood $i");
        $found += (int) ($value !== false);
        $wrong += (int) ($value !== false && $value !== [$i, $text($i)]);
    }

    return [apcu_fetch('flood 3999')[0], $found > 10 && $found < 4000, $wrong, apcu_store('huge', str_repeat('x', 1 << 20)),
        apcu_exists('huge'), apcu_cache_info(true)['expunges'] > 0];
}

/** Ends the request within apcu_entry(). The value stored before the end must remain. */
function finish(string $how): mixed
{
    return apcu_entry('ends', function () use ($how): string {
        apcu_store('begun', $how);
        if ($how === 'exit') {
            exit(json_encode('exit'));
        }
        if ($how === 'kill') {
            posix_kill(getmypid(), SIGKILL);
        }

        return $how;
    });
}

$handle = function (): void {
    $path = parse_url($_SERVER['REQUEST_URI'], PHP_URL_PATH);
    if ($path === '/alike') {
        require __DIR__ . '/alike.php';

        return;
    }
    $answer = match ($path) {
        '/symfony' => with_symfony(),
        '/laravel' => with_laravel(),
        '/composer' => with_composer(),
        '/count' => [apcu_inc('visits'), getmypid()],
        '/get' => apcu_fetch($_GET['key']),
        '/set' => apcu_store($_GET['key'], $_GET['value']),
        '/entry' => entry(),
        '/flood' => flood(),
        '/end' => finish($_GET['how']),
        '/there' => [function_exists('apcu_fetch'), class_exists('APCUIterator'), defined('APC_ITER_ALL'), extension_loaded('apcu'),
            function_exists('apcu_enabled') && apcu_enabled()],
        '/whose' => [(new ReflectionExtension('apcu'))->getINIEntries()['apc.shm_size'] ?? 'ours', apcu_store('whose', 1)],
        '/off' => [apcu_enabled(), apcu_store('a', 1), apcu_fetch('a'), apcu_inc('a'), apcu_entry('a', fn () => 1), @apcu_cache_info()],
        '/room' => [@apcu_store('a', 1), error_get_last()['message'] ?? null],
    };
    header('Content-Type: application/json');
    echo json_encode($answer);
};

switch (getenv('MODEL')) {
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
