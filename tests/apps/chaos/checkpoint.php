<?php

/** Serves the pages of app/ below a checkpoint. */

declare(strict_types=1);

require dirname(__DIR__) . '/version.php';
require dirname(__DIR__) . '/pages.php';

Samovar\checkpoint();

Chaos\answer();
