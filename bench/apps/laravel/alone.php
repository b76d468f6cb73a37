<?php

declare(strict_types=1);

use App\Worker;
use Illuminate\Http\Request;
use Symfony\Component\HttpFoundation\Response;

use function Samovar\Bench\Alone\request;
use function Samovar\Bench\Alone\run;

require dirname(__DIR__) . '/alone.php';

const VISITORS = 64;

$app = require __DIR__ . '/bootstrap/app.php';
$worker = new Worker($app);

/** The page, and the cookies that its visitor receives. */
$visit = static function () use ($worker): array {
    $cookies = [];
    $worker->handle(Request::capture(), static function (Response $response) use (&$cookies): void {
        $response->send();
        foreach ($response->headers->getCookies() as $cookie) {
            $cookies[$cookie->getName()] = $cookie->getValue();
        }
    });

    return $cookies;
};

// As visitors of the servers do, these return with a session: each one starts a session first.
ob_start();
$visitors = array_map(static fn (): array => $visit(), range(1, VISITORS));
ob_end_clean();

run($visit, array_map(static fn (array $cookies): array => request('/', cookies: $cookies), $visitors));
