<?php

/** A reader and a writer of XML created above the checkpoint. */

declare(strict_types=1);

return [
    'boot' => static function (): array {
        $writer = new XMLWriter();
        $writer->openMemory();

        return [XMLReader::XML('<a><b/><c/></a>'), $writer];
    },
    'leak' => static fn (array $two) => [$two[0]->read(), $two[1]->writeElement('dirt')],
    'look' => static fn (array $two) => [$two[0]->name, $two[1]->outputMemory(false)],
    'resident' => 'kept',
    'needs' => ['xmlreader', 'xmlwriter'],
];
