<?php

/** A hash that was started above the checkpoint. */

declare(strict_types=1);

return [
    'boot' => static fn () => hash_init('sha256'),
    'leak' => static fn (HashContext $context) => hash_update($context, 'dirt'),
    'look' => static fn (HashContext $context) => hash_final(hash_copy($context)),
    'resident' => 'kept',
];
