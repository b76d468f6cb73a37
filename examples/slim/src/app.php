<?php

declare(strict_types=1);

/* The application: settings, middleware and routes. Both front controllers use it. */

// Slim 3 is older than PHP 8.
error_reporting(E_ALL & ~E_DEPRECATED);

require_once '/usr/share/php/Slim/autoload.php';
require_once __DIR__ . '/Todos.php';
require_once __DIR__ . '/middleware.php';

use App\Todos;
use Psr\Http\Message\ResponseInterface as Response;
use Psr\Http\Message\ServerRequestInterface as Request;
use Slim\App;

use function App\basicAuth;
use function App\named;
use function App\session;

$app = new App(['settings' => ['displayErrorDetails' => false]]);
$app->add(named('slim-example'));

$app->get('/', function (Request $request, Response $response): Response {
    $response->getBody()->write(<<<'HTML'
        <!doctype html>
        <html lang="en">
        <meta charset="utf-8">
        <title>Slim on Samovar</title>
        <h1>Hello from Slim</h1>
        <ul>
            <li><a href="/hello/Ann?greeting=Welcome">A greeting</a></li>
            <li><a href="/todos">Your list, as JSON</a></li>
        </ul>
        <form action="/upload" method="post" enctype="multipart/form-data">
            <input type="file" name="files[]" multiple> <button>Upload</button>
        </form>

        HTML);

    return $response;
});

$app->get('/hello/{name}', function (Request $request, Response $response, array $args): Response {
    $greeting = (string) ($request->getQueryParams()['greeting'] ?? 'Hello');
    $response->getBody()->write("$greeting, {$args['name']}!\n");

    return $response->withHeader('Content-Type', 'text/plain; charset=utf-8');
})->setName('hello');

$app->group('/todos', function (App $app): void {
    $app->get('', function (Request $request, Response $response): Response {
        return $response->withJson((new Todos())->all());
    });
    $app->post('', function (Request $request, Response $response): Response {
        $title = $request->getParsedBody()['title'] ?? null;
        if (!is_string($title) || $title === '') {
            return $response->withJson(['error' => 'title: a text is needed'], 422);
        }
        $todo = (new Todos())->add($title);

        return $response->withJson($todo, 201)->withHeader('Location', "/todos/{$todo['id']}");
    });
    $app->get('/{id:\d+}', function (Request $request, Response $response, array $args): Response {
        $todo = (new Todos())->get((int) $args['id']);

        return $todo === null ? $response->withJson(['error' => 'no such todo'], 404) : $response->withJson($todo);
    });
    $app->delete('/{id:\d+}', function (Request $request, Response $response, array $args): Response {
        (new Todos())->remove((int) $args['id']);

        return $response->withStatus(204);
    });
})->add(session());

$app->post('/upload', function (Request $request, Response $response): Response {
    $received = [];
    foreach ($request->getUploadedFiles()['files'] ?? [] as $file) {
        $hash = null;
        if ($file->getError() === UPLOAD_ERR_OK) {
            $target = tempnam(sys_get_temp_dir(), 'slim-upload-');
            $file->moveTo($target);
            $hash = hash_file('sha256', $target);
            unlink($target);
        }
        $received[] = [
            'name' => $file->getClientFilename(),
            'type' => $file->getClientMediaType(),
            'bytes' => $file->getSize(),
            'error' => $file->getError(),
            'sha256' => $hash,
        ];
    }

    return $response->withJson(['fields' => $request->getParsedBody(), 'files' => $received]);
});

$app->put('/body', function (Request $request, Response $response): Response {
    $body = (string) $request->getBody();

    return $response->withJson(['bytes' => strlen($body), 'sha256' => hash('sha256', $body)]);
});

$app->get('/admin', function (Request $request, Response $response): Response {
    $response->getBody()->write("Welcome, {$request->getAttribute('user')}.\n");

    return $response->withHeader('Content-Type', 'text/plain; charset=utf-8');
})->add(basicAuth(['ann' => 'tea']));

$app->redirect('/old', '/', 301);

$app->get('/boom', function (): never {
    throw new RuntimeException('This page always fails.');
});

return $app;
