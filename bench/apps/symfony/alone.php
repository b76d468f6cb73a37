<?php

declare(strict_types=1);

use Samovar\Bench\Symfony\Application;
use Symfony\Component\HttpFoundation\Request;
use Symfony\Component\HttpFoundation\Response;

use function Samovar\Bench\Alone\request;
use function Samovar\Bench\Alone\run;

require dirname(__DIR__) . '/alone.php';
require __DIR__ . '/Application.php';

const VISITORS = 64;

$application = Application::boot();

/** The page, and the session id that its visitor receives. */
$visit = static function () use ($application): string {
    $id = '';
    $application->handle(Request::createFromGlobals(), static function (Response $response) use (&$id): void {
        $response->send();
        $id = session_id();
    });

    return $id;
};

// As visitors of the servers do, these return with a session: each one starts a session first.
ob_start();
$ids = array_map(static fn (): string => $visit(), range(1, VISITORS));
ob_end_clean();

run($visit, array_map(
    static fn (string $id): array => request('/', cookies: [session_name() => $id]),
    $ids,
));
