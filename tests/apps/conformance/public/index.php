<?php

/** The front controller: says that it is the one that answers. */

declare(strict_types=1);

header('X-Answered-By: front controller');
require __DIR__ . '/dump.php';
