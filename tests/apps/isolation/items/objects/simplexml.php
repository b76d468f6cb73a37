<?php

/** An XML document, through SimpleXML. */

declare(strict_types=1);

return [
    'boot' => static fn () => new SimpleXMLElement('<tea><cup>green</cup></tea>'),
    'leak' => static function (SimpleXMLElement $tea): void {
        $tea->addChild('dirt', '77');
        unset($tea->cup);
    },
    'look' => static fn (SimpleXMLElement $tea) => $tea->asXML(),
    'resident' => 'kept',
    'needs' => ['SimpleXML'],
];
