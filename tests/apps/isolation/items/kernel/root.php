<?php

/** The root directory of the process. */

declare(strict_types=1);

return [
    'leak' => static fn () => chroot(Isolation\subfolder('root')),
    'look' => static fn () => @file_get_contents('/etc/passwd') !== false,
    'resident' => 'kept',
    'refork' => true,
    'needs' => ['chroot()', 'root'],
];
