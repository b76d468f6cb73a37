<?php

declare(strict_types=1);

header('X-Answered-By: raw/script.php');
require dirname(__DIR__) . '/dump.php';
