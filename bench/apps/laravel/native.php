<?php

declare(strict_types=1);

use App\Worker;
use Illuminate\Http;
use Samovar\Request;
use Samovar\Response;
use Symfony\Component\HttpFoundation;

use function Samovar\serve;

$app = require __DIR__ . '/bootstrap/app.php';
$worker = new Worker($app);

serve(static function (Request $request) use ($worker): Response {
    $theirs = Http\Request::createFromBase(new HttpFoundation\Request(
        $request->query(),
        $request->form(),
        [],
        $request->cookies(),
        $request->files(),
        $request->server(),
    ));
    $ours = null;
    $worker->handle($theirs, static function (HttpFoundation\Response $response) use (&$ours): void {
        $ours = new Response(
            $response->getContent(),
            $response->getStatusCode(),
            $response->headers->allPreserveCase(),
        );
    });

    return $ours;
});
