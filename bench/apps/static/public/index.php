<?php

declare(strict_types=1);

// For targets without a file. No request of the workload comes here.
http_response_code(404);
