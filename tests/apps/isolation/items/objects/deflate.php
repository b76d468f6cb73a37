<?php

/** Compression that was started above the checkpoint. */

declare(strict_types=1);

return [
    'boot' => static fn () => deflate_init(ZLIB_ENCODING_RAW),
    'leak' => static fn ($context) => deflate_add($context, 'dirt', ZLIB_NO_FLUSH),
    'look' => static fn ($context) => bin2hex(deflate_add($context, 'tea', ZLIB_SYNC_FLUSH)),
    'resident' => 'kept',
    'needs' => ['zlib'],
];
