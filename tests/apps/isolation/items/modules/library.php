<?php

/** A shared library that a request loads. */

declare(strict_types=1);

namespace Isolation\Items;

final class Loaded
{
    public static ?\FFI $library = null;
}

return [
    'leak' => static fn () => Loaded::$library = \FFI::cdef('', 'libBrokenLocale.so.1'),
    'look' => static fn () => \count(preg_grep('/libBrokenLocale/', file('/proc/self/maps'))) > 0,
    'resident' => 'kept',
    'needs' => ['FFI'],
];
