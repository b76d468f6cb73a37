<?php

// The call stands in another file: the first request finds it out.

declare(strict_types=1);

require __DIR__ . '/hello.php';
