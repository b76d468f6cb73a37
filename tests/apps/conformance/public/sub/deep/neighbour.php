<?php

return "beside the script\n";
