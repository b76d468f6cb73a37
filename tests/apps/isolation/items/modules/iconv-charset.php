<?php

/** A character set for which libc loads a module. */

declare(strict_types=1);

return [
    'leak' => static fn () => iconv('UTF-8', 'EUC-JP', 'tea'),
    'look' => static fn () => count(preg_grep('/gconv.*\.so/', file('/proc/self/maps'))) > 0,
    'resident' => 'kept',
    'needs' => ['iconv'],
];
