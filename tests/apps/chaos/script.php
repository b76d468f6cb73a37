<?php

/** Serves the pages of app/ as whole scripts. */

declare(strict_types=1);

require dirname(__DIR__) . '/version.php';
require dirname(__DIR__) . '/pages.php';

Chaos\answer();
