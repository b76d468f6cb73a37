<?php

declare(strict_types=1);

namespace App\Controller;

use App\Entity\Note;
use App\Entity\User;
use App\Form\NoteType;
use App\Form\RegistrationType;
use App\Message\NoteWritten;
use App\Repository\Notes;
use Doctrine\ORM\EntityManagerInterface;
use Symfony\Bundle\FrameworkBundle\Controller\AbstractController;
use Symfony\Component\HttpFoundation\File\UploadedFile;
use Symfony\Component\HttpFoundation\Request;
use Symfony\Component\HttpFoundation\Response;
use Symfony\Component\Messenger\MessageBusInterface;
use Symfony\Component\PasswordHasher\Hasher\UserPasswordHasherInterface;
use Symfony\Component\Routing\Annotation\Route;
use Symfony\Component\Security\Http\Authentication\AuthenticationUtils;
use Symfony\Contracts\Translation\TranslatorInterface;

/** Users and their private data. */
final class UserController extends AbstractController
{
    use RendersForms;

    public function __construct(private Notes $notes, private TranslatorInterface $translator)
    {
    }

    #[Route('/login', name: 'login', methods: ['GET', 'POST'])]
    public function login(AuthenticationUtils $utils): Response
    {
        return $this->render('security/login.html.twig', [
            'last' => $utils->getLastUsername(),
            'error' => $utils->getLastAuthenticationError(),
        ]);
    }

    #[Route('/logout', name: 'logout', methods: ['GET'])]
    public function logout(): never
    {
        throw new \LogicException('The firewall answers this.');
    }

    #[Route('/register', name: 'register', methods: ['GET', 'POST'])]
    public function register(
        Request $request,
        EntityManagerInterface $manager,
        UserPasswordHasherInterface $hasher,
    ): Response {
        $user = new User(locale: $request->getLocale());
        $form = $this->createForm(RegistrationType::class, $user);
        $form->handleRequest($request);
        if (!$form->isSubmitted() || !$form->isValid()) {
            return $this->renderWithForm('form.html.twig', $form, ['title' => 'user.register']);
        }

        $user->setPassword($hasher->hashPassword($user, $form->get('password')->getData()));
        $manager->persist($user);
        $manager->flush();
        $this->addFlash('notice', $this->translator->trans('user.welcome', ['%name%' => $user->name]));

        return $this->redirectToRoute('login', [], Response::HTTP_SEE_OTHER);
    }

    #[Route('/notes', name: 'notes', methods: ['GET', 'POST'])]
    public function notes(Request $request, MessageBusInterface $bus): Response
    {
        $author = $this->getUser();
        assert($author instanceof User);
        $note = $this->notes->begin($author);
        $form = $this->createForm(NoteType::class, $note);
        $form->handleRequest($request);
        if (!$form->isSubmitted() || !$form->isValid()) {
            return $this->renderWithForm('notes.html.twig', $form, ['notes' => $this->notes->of($author)]);
        }

        $note->picture = self::describe($form->get('picture')->getData());
        $this->notes->add($note);
        $bus->dispatch(new NoteWritten($note->getId()));
        $this->addFlash('notice', $this->translator->trans('note.kept', ['%text%' => $note->text]));

        return $this->redirectToRoute('notes', [], Response::HTTP_SEE_OTHER);
    }

    #[Route('/notes/{number<\d+>}/remove', name: 'note_remove', methods: ['POST'])]
    public function remove(Request $request, int $number): Response
    {
        $note = $this->notes->find($this->getUser(), $number) ?? throw $this->createNotFoundException();
        if (!$this->isCsrfTokenValid("remove $number", (string) $request->request->get('token'))) {
            throw $this->createAccessDeniedException();
        }
        $this->notes->remove($note);
        $this->addFlash('notice', $this->translator->trans('note.removed', ['%text%' => $note->text]));

        return $this->redirectToRoute('notes', [], Response::HTTP_SEE_OTHER);
    }

    #[Route('/notes.json', name: 'notes_json', methods: ['GET'])]
    public function notesAsJson(): Response
    {
        $plain = static fn (Note $note): array => [
            'number' => $note->number,
            'text' => $note->text,
            'product' => $note->product->name,
            'read' => $note->isRead,
        ];

        $author = $this->getUser();
        assert($author instanceof User);

        return $this->json(['author' => $author->name, 'notes' => array_map($plain, $this->notes->of($author))]);
    }

    #[Route('/admin', name: 'admin', methods: ['GET'])]
    public function admin(): Response
    {
        return $this->render('admin.html.twig');
    }

    private static function describe(?UploadedFile $file): ?string
    {
        return $file === null ? null : sprintf(
            '%s, %d bytes, %s',
            $file->getClientOriginalName(),
            $file->getSize(),
            hash_file('crc32b', $file->getPathname()),
        );
    }
}
