<?php

/** The end of malloc's heap. */

declare(strict_types=1);

namespace Isolation\Items;

final class Forest
{
    /** @var list<\DOMDocument> */
    public static array $documents = [];
}

return [
    'leak' => static function (): void {
        $document = new \DOMDocument();
        $document->loadXML('<tea>' . str_repeat('<cup>green</cup>', 200_000) . '</tea>');
        Forest::$documents[] = $document;
    },
    'look' => static fn () => preg_match_all('/-(\w+) .*\[heap\]$/m', file_get_contents('/proc/self/maps'), $m)
        ? end($m[1])
        : null,
    'resident' => 'kept',
    'needs' => ['dom'],
];
