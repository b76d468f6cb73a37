<?php

// The call is in another file. The server discovers it in the first request.

declare(strict_types=1);

require __DIR__ . '/hello.php';
