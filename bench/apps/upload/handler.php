<?php

declare(strict_types=1);

namespace Samovar\Bench\Upload;

const BYTES = 10_485_760;

/**
 * Checks that the file arrived completely. Does not read it: the measurement is about the way to PHP.
 *
 * @param array<string, array<string, mixed>> $files as in $_FILES
 *
 * @return array{0: int, 1: string} status and text
 */
function answer(array $files): array
{
    $file = $files['file'] ?? null;
    if ($file === null || $file['error'] !== UPLOAD_ERR_OK || filesize($file['tmp_name']) !== BYTES) {
        return [400, 'not the file that was expected: ' . json_encode($file) . "\n"];
    }

    return [200, "{$file['name']}: {$file['size']} bytes\n"];
}

/** Reads from and writes to superglobals. */
function respond(): void
{
    [$status, $text] = answer($_FILES);
    http_response_code($status);
    header('Content-Type: text/plain');
    echo $text;
}
