<?php

declare(strict_types=1);

namespace Samovar\Runtime;

use Samovar\Request;

/**
 * Implementation of the polyfilled Samovar\serve().
 *
 * @internal
 */
final class Polyfill
{
    private static bool $serving = false;

    /** @throws \Error on the command line and within a handler */
    public static function serve(callable $handler, int $rollbackEvery): void
    {
        if ($rollbackEvery < 0) {
            throw new \ValueError(
                'Samovar\serve(): Argument #2 ($rollbackEvery) must be greater than or equal to 0',
            );
        }
        if (self::$serving) {
            throw new \Error('Samovar\serve() must not be called from within a handler');
        }
        if (\in_array(\PHP_SAPI, ['cli', 'phpdbg', 'embed'], true)) {
            throw new \Error(
                "Samovar\\serve() serves HTTP requests: there are none on the console\n"
                . 'hint: run samovar serve ' . ($_SERVER['argv'][0] ?? 'worker.php'),
            );
        }
        self::answer($handler, Request::fromGlobals());
    }

    /**
     * Calls $handler for $request and sends its result.
     *
     * @throws \TypeError when the result is not a string, a Response or null
     */
    public static function answer(callable $handler, Request $request): void
    {
        self::$serving = true;
        try {
            $answer = self::wantsRequest($handler) ? $handler($request) : $handler();
        } finally {
            self::$serving = false;
        }
        Sapi::deliver($answer, 'the handler of Samovar\serve()');
    }

    private static function wantsRequest(callable $handler): bool
    {
        return (new \ReflectionFunction(\Closure::fromCallable($handler)))->getNumberOfParameters() > 0;
    }
}
