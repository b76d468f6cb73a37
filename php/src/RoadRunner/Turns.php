<?php

declare(strict_types=1);

namespace Samovar\Runtime\RoadRunner;

/**
 * boot → requests, for a script with its own request loop: the server's loop runs in a fiber, which
 * is suspended while the script handles a request.
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

    /** Returns the single loop of this process. */
    public static function ofThisProcess(): self
    {
        return self::$ofThisProcess ??= new self();
    }

    /**
     * Ends the current request and waits for the next one. Superglobals, header() and echo then
     * belong to the next one.
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

    /** Returns whether there is an open request. */
    public function isOpen(): bool
    {
        return $this->loop !== null && $this->loop->isSuspended();
    }

    /** Makes the open request the last one. */
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
