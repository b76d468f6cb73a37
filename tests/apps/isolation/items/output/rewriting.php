<?php

/** A variable that is added to the page's links. */

declare(strict_types=1);

return [
    'leak' => static fn () => output_add_rewrite_var('dirt', '1'),
    'look' => static fn () => ob_list_handlers(),
    'resident' => 'reset',
];
