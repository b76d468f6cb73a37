<?php

declare(strict_types=1);

use Samovar\Bench\Symfony\Application;
use Swoole\Http\Request;
use Swoole\Http\Response;
use Symfony\Component\HttpFoundation;

use function Samovar\Bench\Swoole\serve;

require dirname(__DIR__, 2) . '/peers/swoole/serve.php';
require __DIR__ . '/Application.php';

$application = Application::boot();

serve(static function (Request $request, Response $response) use ($application): void {
    $server = array_change_key_case($request->server, CASE_UPPER);
    foreach ($request->header as $name => $value) {
        $server['HTTP_' . strtoupper(strtr($name, '-', '_'))] = $value;
    }
    $theirs = new HttpFoundation\Request(
        $request->get ?? [],
        $request->post ?? [],
        [],
        $request->cookie ?? [],
        $request->files ?? [],
        $server,
        $request->rawContent() ?: '',
    );
    $application->handle($theirs, static function (HttpFoundation\Response $answer) use ($response): void {
        $response->status($answer->getStatusCode());
        foreach ($answer->headers->allPreserveCase() as $name => $values) {
            $response->header($name, $values);
        }
        $response->end($answer->getContent());
    });
});
