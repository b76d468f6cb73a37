<?php

/** A name that curl resolves in a thread. */

declare(strict_types=1);

return [
    'boot' => static fn () => curl_init(),
    'leak' => static function (CurlHandle $handle): void {
        curl_setopt_array($handle, [CURLOPT_URL => 'http://localhost:1/', CURLOPT_RETURNTRANSFER => true]);
        curl_exec($handle);
    },
    'look' => static fn (CurlHandle $handle) => [curl_errno($handle), count(scandir('/proc/self/task'))],
    'resident' => 'kept',
    'needs' => ['curl'],
];
