<?php

declare(strict_types=1);

namespace Samovar\Runtime;

use Samovar\Request;
use Samovar\Response;

/**
 * For applications written by hand, in phpDaemon's manner: three callables, one for each part of a life.
 */
final class Daemon
{
    /**
     * Serves an application that lives as long as its process. Returns when the server stops.
     *
     * Under another SAPI all three are called for the one request of the script.
     *
     * @template A
     *
     * @param callable(): A $init once, while the application boots: what it returns is given to the others
     * @param callable(Request, A): (string|Response|null) $run for each request: answers it as a handler of
     *     Samovar\serve() does
     * @param callable(Request, A): mixed|null $onFinish after each answer was sent, also after exit() and after an
     *     exception in $run: the client does not wait for it
     * @param int $rollbackEvery as with Samovar\serve()
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
        // For exit() and uncaught exceptions, which PHP reports before it calls this.
        register_shutdown_function($finish);
        Sapi::deliver($run($request, $application), '$run of Samovar\Runtime\Daemon::serve()');
        $finish();
    }
}
