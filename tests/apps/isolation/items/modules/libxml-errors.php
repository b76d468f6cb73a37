<?php

/** The handling of XML errors, and the collected errors. */

declare(strict_types=1);

return [
    'leak' => static function (): void {
        libxml_use_internal_errors(true);
        (new DOMDocument())->loadXML('<tea><broken>');
    },
    'look' => static function (): array {
        $errors = count(libxml_get_errors());
        $internal = libxml_use_internal_errors(true);
        libxml_use_internal_errors($internal);

        return [$errors, $internal];
    },
    'resident' => 'reset',
    'needs' => ['dom'],
];
