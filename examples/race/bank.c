/* Two tellers pay from one account. The check of the balance is not atomic with the payment, so rarely both tellers
 * pay. */
#include <pthread.h>
#include <stdio.h>
#include <unistd.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int account = 100;

__attribute__((noinline)) int balance(void)
{
	pthread_mutex_lock(&lock);
	int now = account;
	pthread_mutex_unlock(&lock);
	return now;
}

__attribute__((noinline)) void pay(int amount)
{
	pthread_mutex_lock(&lock);
	account -= amount;
	pthread_mutex_unlock(&lock);
}

static void *teller(void *unused)
{
	if (balance() >= 80)
		pay(80);
	return unused;
}

int main(void)
{
	pthread_t tellers[2];

	while (access("open", F_OK) != 0)
		usleep(1000);
	for (int i = 0; i < 2; i++)
		pthread_create(&tellers[i], NULL, teller, NULL);
	for (int i = 0; i < 2; i++)
		pthread_join(tellers[i], NULL);
	printf("left %d\n", account);
	fflush(stdout);
	pause();
	return 0;
}
