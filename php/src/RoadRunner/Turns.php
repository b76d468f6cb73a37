<?php

declare(strict_types=1);

namespace Samovar\Runtime\RoadRunner;

/**
 * boot → requests, for a loop that asks for them: the server's own loop runs in a fiber, which is suspended while the
 * script answers a request.
 *
 * @internal
 */
final class Turns
{
    private static ?self $ofThisProcess = null;

    private ?\Fiber $loop = null;
    private bool $goesOn = true;

    private function __construct()
    {
    }

    /** There is one loop in a process. */
    public static function ofThisProcess(): self
    {
        return self::$ofThisProcess ??= new self();
    }

    /**
     * Ends the request before and waits for the next one; its superglobals, header() and echo are the script's then.
     *
     * @return bool false when the server stops, and after stop()
     *
     * @throws \RuntimeException in a script that is not the front controller
     */
    public function next(): bool
    {
        if ($this->loop === null) {
            $this->loop = new \Fiber($this->serve(...));
            $this->goesOn && $this->loop->start();
        } elseif ($this->loop->isSuspended()) {
            $this->loop->resume();
        }

        return $this->isOpen();
    }

    /** Whether there is a request. */
    public function isOpen(): bool
    {
        return $this->loop !== null && $this->loop->isSuspended();
    }

    /** The request that is open is the last. */
    public function stop(): void
    {
        $this->goesOn = false;
    }

    private function serve(): void
    {
        do {
            $isServed = frankenphp_handle_request(static function (): void {
                \Fiber::suspend();
            });
        } while ($isServed && $this->goesOn);
    }
}
