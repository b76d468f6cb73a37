<?php

/** The front controller, which prints its own name. */

declare(strict_types=1);

header('X-Answered-By: front controller');
require __DIR__ . '/dump.php';
