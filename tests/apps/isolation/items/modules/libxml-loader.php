<?php

/** The loader of external XML entities, and its stream context. */

declare(strict_types=1);

return [
    'leak' => static function (): void {
        libxml_set_external_entity_loader(static fn () => null);
        libxml_set_streams_context(stream_context_create(['http' => ['method' => 'DIRT']]));
    },
    'look' => static fn () => libxml_get_external_entity_loader() !== null,
    'resident' => 'reset',
    'needs' => ['libxml'],
];
