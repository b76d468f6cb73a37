<?php

declare(strict_types=1);

use App\Worker;
use Illuminate\Http\Request;
use Symfony\Component\HttpFoundation\Response;

use function Samovar\serve;

$app = require __DIR__ . '/bootstrap/app.php';
$worker = new Worker($app);

serve(static function () use ($worker): void {
    $worker->handle(Request::capture(), static fn (Response $response) => $response->send());
});
