<?php

/** The error queue of OpenSSL. */

declare(strict_types=1);

return [
    'leak' => static fn () => @openssl_x509_read('dirt') . @openssl_pkey_get_private('dirt'),
    'look' => static fn () => openssl_error_string() !== false,
    'resident' => 'kept',
    'needs' => ['openssl'],
];
