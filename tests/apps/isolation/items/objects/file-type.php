<?php

/** The flags of a finfo object. */

declare(strict_types=1);

return [
    'boot' => static fn () => new finfo(FILEINFO_MIME_TYPE),
    'leak' => static fn (finfo $finfo) => $finfo->set_flags(FILEINFO_MIME_ENCODING),
    'look' => static fn (finfo $finfo) => $finfo->buffer('tea'),
    'resident' => 'kept',
    'needs' => ['fileinfo'],
];
