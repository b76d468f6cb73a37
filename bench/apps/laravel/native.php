<?php

declare(strict_types=1);

use App\Worker;
use Illuminate\Http;
use Samovar\Request;
use Samovar\Response;
use Symfony\Component\HttpFoundation;

use function Samovar\Bench\Foundation\request;
use function Samovar\Bench\Foundation\response;
use function Samovar\serve;

require dirname(__DIR__) . '/foundation.php';

$app = require __DIR__ . '/bootstrap/app.php';
$worker = new Worker($app);

serve(static function (Request $request) use ($worker): Response {
    $ours = null;
    $asked = Http\Request::createFromBase(request($request));
    $worker->handle($asked, static function (HttpFoundation\Response $theirs) use (&$ours): void {
        $ours = response($theirs);
    });

    return $ours;
});
