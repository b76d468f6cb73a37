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

/** The page, and the cookies that its visitor is given. */
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

// As the servers' visitors do, they come back with a session: each is let in once.
ob_start();
$visitors = array_map(static fn (): array => $visit(), range(1, VISITORS));
ob_end_clean();

run($visit, array_map(static fn (array $cookies): array => request('/', cookies: $cookies), $visitors));
