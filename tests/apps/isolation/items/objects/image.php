<?php

/** A picture created above the checkpoint. */

declare(strict_types=1);

return [
    'boot' => static fn () => imagecreatetruecolor(100, 100),
    'leak' => static fn (GdImage $image) => imagefilledrectangle($image, 0, 0, 50, 50, 0xFF0000),
    'look' => static fn (GdImage $image) => imagecolorat($image, 7, 7),
    'resident' => 'kept',
    'needs' => ['gd'],
];
