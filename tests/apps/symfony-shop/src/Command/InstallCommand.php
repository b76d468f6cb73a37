<?php

declare(strict_types=1);

namespace App\Command;

use App\Entity\Product;
use App\Entity\User;
use Doctrine\ORM\EntityManagerInterface;
use Doctrine\ORM\Tools\SchemaTool;
use Symfony\Component\Console\Attribute\AsCommand;
use Symfony\Component\Console\Command\Command;
use Symfony\Component\Console\Input\ArrayInput;
use Symfony\Component\Console\Input\InputArgument;
use Symfony\Component\Console\Input\InputInterface;
use Symfony\Component\Console\Output\OutputInterface;
use Symfony\Component\PasswordHasher\Hasher\UserPasswordHasherInterface;

#[AsCommand('app:install', 'Creates the tables, the products and the users')]
final class InstallCommand extends Command
{
    private const PASSWORD = 'tea';
    private const PRODUCTS = ['Assam' => 790, 'Darjeeling' => 1290, 'Sencha' => 990, 'Samovar' => 24900];

    public function __construct(
        private EntityManagerInterface $manager,
        private UserPasswordHasherInterface $hasher,
    ) {
        parent::__construct();
    }

    protected function configure(): void
    {
        $this->addArgument('users', InputArgument::IS_ARRAY, 'Names beside ann, who is an administrator, and bob');
    }

    protected function execute(InputInterface $input, OutputInterface $output): int
    {
        $tool = new SchemaTool($this->manager);
        $tool->dropDatabase();
        $metadata = $this->manager->getMetadataFactory()->getAllMetadata();
        $tool->createSchema($metadata);
        // Doctrine fails if two processes create the proxies' folder at the same time.
        $this->manager->getProxyFactory()->generateProxyClasses($metadata);
        $this->getApplication()->find('messenger:setup-transports')->run(new ArrayInput([]), $output);
        $changed = new \DateTimeImmutable('2024-02-29 12:00:00', new \DateTimeZone('UTC'));
        foreach (self::PRODUCTS as $name => $cents) {
            $this->manager->persist(new Product($name, $cents, $changed));
        }
        $this->addUser('ann', ['ROLE_ADMIN']);
        foreach (['bob', ...$input->getArgument('users')] as $name) {
            $this->addUser($name, []);
        }
        $this->manager->flush();
        $output->writeln('installed');

        return Command::SUCCESS;
    }

    /** @param list<string> $roles */
    private function addUser(string $name, array $roles): void
    {
        $user = new User($name, 'en', $roles);
        $user->setPassword($this->hasher->hashPassword($user, self::PASSWORD));
        $this->manager->persist($user);
    }
}
