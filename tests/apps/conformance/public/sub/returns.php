<?php

return 'from sub/returns.php';
