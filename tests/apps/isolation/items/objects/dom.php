<?php

/** A document created above the checkpoint. */

declare(strict_types=1);

return [
    'boot' => static function (): DOMDocument {
        $document = new DOMDocument();
        $document->loadXML('<tea><cup id="1"/></tea>');

        return $document;
    },
    'leak' => static function (DOMDocument $document): void {
        $document->documentElement->appendChild($document->createElement('dirt'));
        $document->documentElement->firstChild->setAttribute('id', '77');
    },
    'look' => static fn (DOMDocument $document) => $document->saveXML(),
    'resident' => 'kept',
    'needs' => ['dom'],
];
