<?php

/** Cookies that handles share. */

declare(strict_types=1);

return [
    'boot' => static function (): array {
        $share = curl_share_init();
        curl_share_setopt($share, CURLSHOPT_SHARE, CURL_LOCK_DATA_COOKIE);
        $handle = curl_init('http://127.0.0.1:1/');
        curl_setopt($handle, CURLOPT_SHARE, $share);

        return [$handle, $share];
    },
    'leak' => static fn (array $two) => curl_setopt($two[0], CURLOPT_COOKIELIST, 'Set-Cookie: dirt=1; domain=a.test'),
    'look' => static fn (array $two) => count(curl_getinfo($two[0], CURLINFO_COOKIELIST)),
    'resident' => 'kept',
    'needs' => ['curl'],
];
