<?php

/** Namespaces of an XPath created above the checkpoint. */

declare(strict_types=1);

return [
    'boot' => static fn () => new DOMXPath(new DOMDocument()),
    'leak' => static fn (DOMXPath $path) => $path->registerNamespace('dirt', 'urn:dirt'),
    'look' => static fn (DOMXPath $path) => @$path->query('//dirt:tea') !== false,
    'resident' => 'kept',
    'needs' => ['dom'],
];
