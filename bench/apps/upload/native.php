<?php

declare(strict_types=1);

use Samovar\Request;
use Samovar\Response;

use function Samovar\Bench\Upload\answer;
use function Samovar\serve;

require __DIR__ . '/handler.php';

serve(static function (Request $request): Response {
    [$status, $text] = answer($request->files());

    return new Response($text, $status, ['Content-Type' => 'text/plain']);
});
