<?php

declare(strict_types=1);

echo json_encode([$_REQUEST, $_GET, count($_ENV) > 0]), "\n";
