<?php

declare(strict_types=1);

namespace Samovar\Runtime;

use Samovar\Request;
use Samovar\Response;

/**
 * Entry point for hand-written applications, in the style of phpDaemon: three callables, for the
 * boot, each request, and the work after each response.
 */
final class Daemon
{
    /**
     * Serves an application that lives as long as its process. Returns when the server stops.
     *
     * Under another SAPI all three callables are called for the one request of the script.
     *
     * @template A
     *
     * @param callable(): A $init called once, during the boot; its result is passed to the other
     * two
     * @param callable(Request, A): (string|Response|null) $run called for each request, as a
     * handler of Samovar\serve()
     * @param callable(Request, A): mixed|null $onFinish called after each response was sent, also
     * after exit() and after an exception in $run; the client does not wait for it
     * @param int $rollbackEvery as for Samovar\serve()
     *
     * @throws \Error when called from within a handler, and on the command line
     * @throws \ValueError when $rollbackEvery is negative
     */
    public static function serve(
        callable $init,
        callable $run,
        ?callable $onFinish = null,
        int $rollbackEvery = 0,
    ): void {
        $application = $init();
        \Samovar\serve(
            static fn (Request $request) => self::answer($request, $application, $run, $onFinish),
            $rollbackEvery,
        );
    }

    private static function answer(Request $request, mixed $application, callable $run, ?callable $onFinish): void
    {
        $isFinished = $onFinish === null;
        $finish = static function () use (&$isFinished, $request, $application, $onFinish): void {
            if (!$isFinished) {
                $isFinished = true;
                Sapi::finish();
                $onFinish($request, $application);
            }
        };
        // Covers exit() and uncaught exceptions. PHP reports the latter before it calls this
        // function.
        register_shutdown_function($finish);
        Sapi::deliver($run($request, $application), '$run of Samovar\Runtime\Daemon::serve()');
        $finish();
    }
}
