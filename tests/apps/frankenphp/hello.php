<?php

// A worker script in the form that FrankenPHP documents: boot, handler, loop with a limit,
// clean-up.

declare(strict_types=1);

final class Hello
{
    public function __construct(private readonly string $bootedAt)
    {
    }

    /** @param array<string, string> $query */
    public function handle(array $query): string
    {
        return sprintf("Hello %s, booted at %s\n", $query['name'] ?? 'world', $this->bootedAt);
    }

    public function terminate(): void
    {
        error_log('terminated after ' . $_SERVER['REQUEST_URI']);
    }

    public function shutdown(): void
    {
        error_log('worker ' . getmypid() . ' shut down');
    }
}

$hello = new Hello(date('H:i:s'));

$handler = static function () use ($hello): void {
    try {
        echo $hello->handle($_GET);
    } catch (Throwable $thrown) {
        http_response_code(500);
        echo $thrown->getMessage();
    }
};

$limit = (int) ($_SERVER['MAX_REQUESTS'] ?? 0);
for ($served = 0; $limit === 0 || $served < $limit; ++$served) {
    $goesOn = \frankenphp_handle_request($handler);
    $hello->terminate();
    gc_collect_cycles();
    if (!$goesOn) {
        break;
    }
}

$hello->shutdown();
