<?php

/** Options of a handle created above the checkpoint, and its last error. */

declare(strict_types=1);

return [
    'boot' => static function (): CurlHandle {
        $handle = curl_init('http://127.0.0.1:1/green');
        curl_setopt($handle, CURLOPT_RETURNTRANSFER, true);

        return $handle;
    },
    'leak' => static function (CurlHandle $handle): void {
        curl_setopt($handle, CURLOPT_URL, 'http://127.0.0.1:1/dirt');
        curl_exec($handle);
    },
    'look' => static fn (CurlHandle $handle) => [curl_getinfo($handle, CURLINFO_EFFECTIVE_URL), curl_errno($handle)],
    'resident' => 'kept',
    'needs' => ['curl'],
];
