<?php

declare(strict_types=1);

use Samovar\Bench\Symfony\Application;
use Symfony\Component\HttpFoundation;
use Workerman\Protocols\Http\Request;
use Workerman\Protocols\Http\Response;

use function Samovar\Bench\Workerman\serve;

require dirname(__DIR__, 2) . '/peers/workerman/serve.php';
require __DIR__ . '/Application.php';

$application = Application::boot();

serve(static function (Request $request) use ($application): Response {
    $server = [
        'REQUEST_METHOD' => $request->method(),
        'REQUEST_URI' => $request->uri(),
        'QUERY_STRING' => $request->queryString(),
        'SERVER_PROTOCOL' => 'HTTP/' . $request->protocolVersion(),
        'REMOTE_ADDR' => $request->connection->getRemoteIp(),
        'SCRIPT_NAME' => '/index.php',
        'SCRIPT_FILENAME' => '/index.php',
    ];
    foreach ($request->header() as $name => $value) {
        $server['HTTP_' . strtoupper(strtr($name, '-', '_'))] = $value;
    }
    $theirs = new HttpFoundation\Request(
        $request->get(),
        $request->post(),
        [],
        $request->cookie(),
        $request->file() ?? [],
        $server,
        $request->rawBody(),
    );
    $ours = null;
    $application->handle($theirs, static function (HttpFoundation\Response $answer) use (&$ours): void {
        $ours = new Response(
            $answer->getStatusCode(),
            $answer->headers->allPreserveCase(),
            (string) $answer->getContent(),
        );
    });

    return $ours;
});
