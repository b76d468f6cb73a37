<?php

/** A parser that was fed above the checkpoint. */

declare(strict_types=1);

return [
    'boot' => static function (): XMLParser {
        $parser = xml_parser_create();
        xml_parse($parser, "<tea>\n<cup>\n", false);

        return $parser;
    },
    'leak' => static fn (XMLParser $parser) => xml_parse($parser, "</cup>\n<dirt>\n", false),
    'look' => static fn (XMLParser $parser) => xml_get_current_line_number($parser),
    'resident' => 'kept',
    'needs' => ['xml'],
];
