<?php

declare(strict_types=1);

echo json_encode([$_REQUEST, $_GET, isset($_ENV['PATH']), count($_ENV) > 0]), "\n";
